# SPDX-License-Identifier: MIT
#
# scripts/bench/report/bars.gp - gnuplot -c bars.gp DATA SVG NAME TITLE ROWS WIDTH: draws two bars
# for each row of DATA. A row has LABEL, then median, low, high and text of native, then of fiberize.
width = ARG6 + 0
set terminal svg size (width < 640 ? 640 : width), 300 font "sans-serif,13" name ARG3 background "white"
set output ARG2
set datafile separator "\t"
set title ARG4 noenhanced
set xtics noenhanced scale 0
set border 3
set tics nomirror
set key outside right top
set style fill solid noborder
set xrange [-0.6:ARG5 - 0.4]
set yrange [0:*]
set offsets 0, 0, graph 0.1, 0
set format y "%.7g"
set grid ytics lc rgb "#dddddd" lt 1
plot ARG1 using ($0 - 0.2):2:(0.36) with boxes lc rgb "#8a94a3" title "native", \
     "" using ($0 + 0.2):6:(0.36) with boxes lc rgb "#1d5fd1" title "fiberize", \
     "" using ($0 - 0.2):3:(0):($4 - $3) with vectors heads size graph 0.01,90 lc rgb "#222222" notitle, \
     "" using ($0 + 0.2):7:(0):($8 - $7) with vectors heads size graph 0.01,90 lc rgb "#222222" notitle, \
     "" using ($0 - 0.2):4:5 with labels noenhanced offset 0, 0.6 notitle, \
     "" using ($0 + 0.2):8:9 with labels noenhanced offset 0, 0.6 notitle, \
     "" using 0:(0):xtic(1) with dots lc rgb "white" notitle
