# SPDX-License-Identifier: MIT
# scripts/dev/manual.awk - for awk -v mark=MARK -f, on a man page: replaces the text between the lines
#	.\" MARK begin and .\" MARK end
# by the environment variable text. Fails unless each of the two lines is there exactly once.
$0 == ".\\\" " mark " begin" {
	print
	print ENVIRON["text"]
	inside = 1
	found++
}
$0 == ".\\\" " mark " end" {
	inside = 0
	closed++
}
!inside { print }
END { exit !(found == 1 && closed == 1) }
