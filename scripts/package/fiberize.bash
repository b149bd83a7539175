# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# scripts/package/fiberize.bash - completion of fiberize(1) for bash.  Commands, options and their
# values come from fiberize --help and fiberize COMMAND --help.

# Prints the commands, which are in the first lines of fiberize --help.
_fiberize_commands()
{
	fiberize --help 2>/dev/null |
		sed -n 's/^\(usage:\|      \) fiberize \(\[options\] \|\[\)\?\([a-z]\+\).*/\3/p'
}

# Prints the flags of "fiberize $1", a line for each: "-p --processors N", "--stats --no-stats".
_fiberize_flags()
{
	fiberize "$@" --help 2>/dev/null | sed -n '/^ \{2,6\}-/{s/, / /g;p}'
}

# Prints the words that are allowed for the option $1; fiberize --help has them in brackets.
_fiberize_words()
{
	fiberize --help 2>/dev/null |
		sed -n "/^ .*$1 /,/^ *(/s/^ *(\\(any of \\)\\?\\(.*\\))\$/\\2/p" |
		sed 's/ or / /; s/,/ /g'
}

# Prints the keys by which the command $1 can sort; its help has them after "by".
_fiberize_keys()
{
	fiberize "$1" --help 2>/dev/null | sed -n 's/^ *by \(.*\)/\1/p' | sed 's/ or / /; s/,/ /g'
}

# Prints completions of $3, the value of option $2; --help calls such a value $1 (FILE, N ...).
_fiberize_value()
{
	case $1 in
	FILE) compgen -f -- "$3" ;;
	DIR) compgen -d -- "$3" ;;
	WORD*) compgen -W "$(_fiberize_words "$2")" -- "$3" ;;
	KEY) compgen -W "$(_fiberize_keys "$command")" -- "$3" ;;
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
	local i word value flag flags commands command=
	local -A values=()

	# _fiberize_add COMMAND...: stores each flag of the commands in values, with the name of its value or ""
	_fiberize_add()
	{
		while read -ra flags; do
			value=${flags[-1]}
			[[ $value != -* ]] || value=
			for flag in "${flags[@]}"; do
				[[ $flag != -* ]] || values[$flag]=$value
			done
		done < <(_fiberize_flags "$@")
	}

	COMPREPLY=()
	commands=" $(_fiberize_commands | tr '\n' ' ')"
	_fiberize_add
	# Words after the program's name belong to that program.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--)
			i=$((i + 1))
			command=run
			break
			;;
		-*)
			# Skip the flag's value: bash splits --flag=value into three words, of which "=" is one.
			if [ "${COMP_WORDS[i + 1]}" = = ]; then
				i=$((i + 2))
			elif [ -n "${values[$word]-}" ]; then
				i=$((i + 1))
			fi
			;;
		*)
			[[ -z $command && $commands = *" $word "* ]] || break
			command=$word
			case $command in
			run) ;;
			bench) _fiberize_add bench ;;
			*)
				values=()
				_fiberize_add "$command"
				;;
			esac
			;;
		esac
	done
	unset -f _fiberize_add
	[ "$prev" != = ] || prev=${COMP_WORDS[COMP_CWORD - 2]}
	[ "$cur" != = ] || cur=
	if [ "$i" -lt "$COMP_CWORD" ]; then
		case $command in
		'' | run | bench)
			if declare -F _command_offset >/dev/null; then
				_command_offset "$i"
				return
			fi
			;;
		esac
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $prev = -* && -n ${values[$prev]-} ]]; then
		mapfile -t COMPREPLY < <(_fiberize_value "${values[$prev]}" "$prev" "$cur")
	elif [[ $cur = -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${!values[*]} --help" -- "$cur")
	else
		case $command in
		'' | run | bench | check)
			mapfile -t COMPREPLY < <([ -n "$command" ] || compgen -W "$commands" -- "$cur"
				compgen -c -- "$cur"; compgen -f -- "$cur")
			;;
		enable | disable | status)
			mapfile -t COMPREPLY < <(compgen -W "$(basename -a -s .service \
				/{etc,usr/lib}/systemd/system/*.service 2>/dev/null)" -- "$cur")
			;;
		kubernetes) ;;
		*)
			mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur"
				compgen -f -- "$cur")
			;;
		esac
	fi
}

complete -o filenames -F _fiberize fiberize
