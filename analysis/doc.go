// Package analysis is the mathematics behind the verdicts, fits and scores:
// paired effects with exact intervals, hit-rate curves, stack distances,
// calibration of predictions. It is pure: no files, no clock, no randomness
// that is not seeded by its arguments.
//
// Effects are estimated by the Hodges-Lehmann median of paired log ratios with
// the exact signed-rank interval. Small samples attain only certain levels, so
// every interval carries the level it attains; it is never rounded up.
package analysis
