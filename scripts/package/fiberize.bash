# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# scripts/package/fiberize.bash - completion of fiberize(1) for bash.  The options
# are those that fiberize --help lists.

_fiberize()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local i word options

	COMPREPLY=()
	# Behind the program's name, it is that program's affair.
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		--) i=$((i + 1)); break ;;
		-p | --processors | --stack-size | --library | --native-threads | --backend | --io | --without)
			i=$((i + 1)) ;;
		= | run | bench) ;;
		check)
			case $cur in
			-*) mapfile -t COMPREPLY < <(compgen -W '--json --' -- "$cur") ;;
			*) mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur") ;;
			esac
			return
			;;
		-*) ;;
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
	case $prev in
	--library)
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
	--native-threads) return ;;
	esac
	case $cur in
	-*)
		options=$(fiberize --help 2>/dev/null | grep -o -e '^  *\(-., \)\?--[a-z-]*\(, --no-[a-z-]*\)\?' |
			grep -o -e '--[a-z-]*')
		mapfile -t COMPREPLY < <(compgen -W "$options -p -v" -- "$cur")
		;;
	*)
		mapfile -t COMPREPLY < <(compgen -W 'run check bench' -- "$cur"
			compgen -c -- "$cur"; compgen -f -- "$cur")
		;;
	esac
}

complete -o filenames -F _fiberize fiberize
