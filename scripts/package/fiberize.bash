# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# scripts/package/fiberize.bash - completion of fiberize(1) for bash.  Options and their values come
# from fiberize --help and fiberize bench --help.

# Prints the lines of flags in the help of "fiberize $1": "-p --processors N", "--stats --no-stats".
_fiberize_flags()
{
	fiberize "$@" --help 2>/dev/null | sed -n '/^ \{2,6\}-/{s/, / /g;p}'
}

# Prints the words that the option $1 may have; fiberize --help has them in brackets.
_fiberize_words()
{
	fiberize --help 2>/dev/null |
		sed -n "/^ .*$1 /,/^ *(/s/^ *(\\(any of \\)\\?\\(.*\\))\$/\\2/p" |
		sed 's/ or / /; s/,/ /g'
}

# Completes $2, a value that --help calls $1.
_fiberize_value()
{
	case $1 in
	FILE) compgen -f -- "$3" ;;
	WORD*) compgen -W "$(_fiberize_words "$2")" -- "$3" ;;
	SIZE) compgen -W '16k 64k 256k 1m 8m' -- "$3" ;;
	N)
		case $2 in
		-p | --processors) compgen -W "1 2 4 8 $(nproc 2>/dev/null)" -- "$3" ;;
		esac
		;;
	esac
}

_fiberize()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local i word value flag flags command=
	local -A values=()

	COMPREPLY=()
	while read -ra flags; do
		value=${flags[-1]}
		for flag in "${flags[@]}"; do
			[[ $value = -* || $flag != -* ]] || values[$flag]=$value
		done
	done < <(_fiberize_flags; _fiberize_flags bench)
	# Words after the program's name belong to that program.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--) i=$((i + 1)); break ;;
		-*)
			# The value is the next word, or the word after a word "=".
			if [ "${COMP_WORDS[i + 1]}" = = ]; then
				i=$((i + 2))
			elif [ -n "${values[$word]-}" ]; then
				i=$((i + 1))
			fi
			;;
		check)
			[ -z "$command" ] || break
			case $cur in
			-*) mapfile -t COMPREPLY < <(compgen -W '--json --help --' -- "$cur") ;;
			*) mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur") ;;
			esac
			return
			;;
		top)
			[ -z "$command" ] || break
			case $prev:$cur in
			--sort:*) mapfile -t COMPREPLY < <(compgen -W 'cpu switches since tid name state wait rate
				total parked announced function rung threads longest number busy queue' -- "$cur") ;;
			*:-*) mapfile -t COMPREPLY < <(compgen -W '--batch --count --rows --sort' -- "$cur") ;;
			esac
			return
			;;
		run | bench)
			[ "$command" != bench ] || break
			command=$word
			;;
		*) break ;;
		esac
	done
	if [ "$i" -lt "$COMP_CWORD" ]; then
		if declare -F _command_offset >/dev/null; then
			_command_offset "$i"
		else
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		fi
		return
	fi
	[ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$cur" != = ] || cur=
	case $prev in
	-*)
		if [ -n "${values[$prev]-}" ]; then
			mapfile -t COMPREPLY < <(_fiberize_value "${values[$prev]}" "$prev" "$cur")
			return
		fi
		;;
	esac
	case $cur in
	-*)
		mapfile -t COMPREPLY < <(compgen -W "$(_fiberize_flags
			[ "$command" != bench ] || _fiberize_flags bench)" -- "$cur")
		;;
	*)
		mapfile -t COMPREPLY < <([ -n "$command" ] || compgen -W 'run check bench top' -- "$cur"
			compgen -c -- "$cur"; compgen -f -- "$cur")
		;;
	esac
}

complete -o filenames -F _fiberize fiberize
