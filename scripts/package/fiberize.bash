# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# scripts/package/fiberize.bash - completion of fiberize(1) for bash.  The options
# are those that fiberize --help and fiberize bench --help list.

# The words that the option $1 may have, as fiberize --help has them in brackets.
_fiberize_words()
{
	fiberize --help 2>/dev/null |
		sed -n "/^ .*$1 /,/^ *(/s/^ *(\\(any of \\)\\?\\(.*\\))\$/\\2/p" |
		sed 's/ or / /; s/,/ /g'
}

_fiberize()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local i word options command=

	COMPREPLY=()
	# Behind the program's name, it is that program's affair.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--) i=$((i + 1)); break ;;
		-p | --processors | --stack-size | --library | --native-threads | --backend | --io | \
			--without | --load | --path | --size | --connections | --duration | \
			--rounds | --port | --wait | --cpus | --json)
			# The next word, or the one behind =, which is a word here.
			i=$((i + 1))
			[ "${COMP_WORDS[i]}" != = ] || i=$((i + 1))
			;;
		-*) [ "${COMP_WORDS[i + 1]}" != = ] || i=$((i + 2)) ;;
		check)
			[ -z "$command" ] || break
			case $cur in
			-*) mapfile -t COMPREPLY < <(compgen -W '--json --help --' -- "$cur") ;;
			*) mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur") ;;
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
	--library | --json)
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	-p | --processors)
		mapfile -t COMPREPLY < <(compgen -W "1 2 4 8 $(nproc 2>/dev/null)" -- "$cur")
		return
		;;
	--stack-size)
		mapfile -t COMPREPLY < <(compgen -W '16k 64k 256k 1m 8m' -- "$cur")
		return
		;;
	--backend | --io | --without)
		mapfile -t COMPREPLY < <(compgen -W "$(_fiberize_words "$prev")" -- "$cur")
		return
		;;
	--native-threads | --load | --path | --size | --connections | --duration | \
		--rounds | --port | --wait | --cpus)
		return
		;;
	esac
	case $cur in
	-*)
		options=$(fiberize --help 2>/dev/null | grep -o -e '^  *\(-., \)\?--[a-z-]*\(, --no-[a-z-]*\)\?' |
			grep -o -e '--[a-z-]*')
		[ "$command" != bench ] ||
			options="$options $(fiberize bench --help 2>/dev/null | grep -o -e '^  --[a-z-]*')"
		mapfile -t COMPREPLY < <(compgen -W "$options -p -v" -- "$cur")
		;;
	*)
		mapfile -t COMPREPLY < <([ -n "$command" ] || compgen -W 'run check bench' -- "$cur"
			compgen -c -- "$cur"; compgen -f -- "$cur")
		;;
	esac
}

complete -o filenames -F _fiberize fiberize
