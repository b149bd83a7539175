# SPDX-License-Identifier: MIT
#
# scripts/bench/report/ratios.gp - gnuplot -c ratios.gp DATA SVG NAME TITLE ROWS WIDTH: draws a point
# and its interval for each row of DATA (LABEL, ratio, low, high, verdict), and a line at ratio 1.
rows = ARG5 + 0
colour(word) = word eq "faster" ? 0x15803d : word eq "slower" ? 0xb91c1c : 0x6b7280
set terminal svg size ARG6 + 0, 90 + 24 * rows font "sans-serif,13" name ARG3 background "white"
set output ARG2
set datafile separator "\t"
set title ARG4 noenhanced
set ytics noenhanced scale 0
set border 1
set tics nomirror
set logscale x 2
set xtics (0.03125, 0.0625, 0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32)
set grid xtics lc rgb "#dddddd" lt 1
set yrange [-rows + 0.3:0.7]
set y2range [-rows + 0.3:0.7]
set y2tics noenhanced scale 0
set bars 0.5
set arrow from first 1, graph 0 to first 1, graph 1 nohead lc rgb "#222222" lw 1.5
unset key
plot ARG1 using 2:(-$0):3:4:(colour(strcol(5))):ytic(1) with xerrorbars pt 7 ps 0.6 lw 2 lc rgb variable, \
     "" using 2:(-$0):y2tic(sprintf("%.2f %s", $2, strcol(5))) axes x1y2 with dots lc rgb "white"
