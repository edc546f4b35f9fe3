package reports

import (
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Plots are told apart by shape and dash first and by grey second, so that they
// survive a black and white printer.
var (
	black = color.Gray{Y: 0}
	grey  = color.Gray{Y: 120}
	light = color.Gray{Y: 205}
)

var glyphs = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.PlusGlyph{},
}

// Shapes by their place in glyphs.
const (
	ring         = 4
	filledSquare = 5
)

// seeThrough are the shapes for points that lie on one another or on lines.
var seeThrough = []int{ring, 1, 2, 3, 7}

var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 3, 2, 3}, {1, 4}, {12, 4}}

const (
	plotWidth  = 17 * vg.Centimeter
	plotHeight = 10 * vg.Centimeter
	plotDPI    = 144
)

// newPlot is a plot with our type sizes.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil // the paper is white, margins and all
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font = sans(12)
	p.Title.Padding = 6
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = sans(11)
		a.Tick.Label.Font = sans(10)
		a.Padding = 4
		a.Tick.Marker = roundTicks{}
	}
	p.Legend.TextStyle.Font = sans(10)
	p.Legend.Padding = 2
	p.Legend.Top = true
	return p
}

func sans(size font.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// figure makes a plot a figure of a page.
func figure(p *plot.Plot, name, caption string, height vg.Length) Figure {
	return Figure{Name: name, Caption: caption, drawing: &drawing{plot: p, height: height}}
}

// margins leaves one, so that glyphs and labels at the edge stay whole.
func margins(c draw.Canvas) draw.Canvas { return draw.Crop(c, 4, -10, 4, -6) }

// line is a polyline in the n-th dash.
func line(xy plotter.XYs, width vg.Length, c color.Color, dash int) (*plotter.Line, error) {
	l, err := plotter.NewLine(xy)
	if err != nil {
		return nil, err
	}
	l.Width, l.Color, l.Dashes = width, c, dashes[dash%len(dashes)]
	return l, nil
}

// points is a scatter in the n-th shape.
func points(xy plotter.XYs, size vg.Length, c color.Color, shape int) (*plotter.Scatter, error) {
	s, err := plotter.NewScatter(xy)
	if err != nil {
		return nil, err
	}
	s.GlyphStyle = draw.GlyphStyle{Color: c, Radius: size, Shape: glyphs[shape%len(glyphs)]}
	return s, nil
}

// addLine and addPoints draw and, with a name, enter the legend.
func addLine(p *plot.Plot, xy plotter.XYs, width vg.Length, c color.Color, dash int, name string) error {
	l, err := line(xy, width, c, dash)
	if err != nil {
		return err
	}
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
	return nil
}

func addPoints(p *plot.Plot, xy plotter.XYs, size vg.Length, c color.Color, shape int, name string) error {
	s, err := points(xy, size, c, shape)
	if err != nil {
		return err
	}
	p.Add(s)
	if name != "" {
		p.Legend.Add(name, s)
	}
	return nil
}

// segment is the two ends of a straight line.
func segment(x0, y0, x1, y1 float64) plotter.XYs { return plotter.XYs{{X: x0, Y: y0}, {X: x1, Y: y1}} }

// names are the ticks of an axis whose positions 0, 1, 2... have names.
type names []string

// Ticks places every name at its position.
func (n names) Ticks(_, _ float64) []plot.Tick {
	out := make([]plot.Tick, len(n))
	for i, s := range n {
		out[i] = plot.Tick{Value: float64(i), Label: s}
	}
	return out
}

// roundTicks are five to ten labelled ticks at round distances.
type roundTicks struct{}

// Ticks returns the ticks between two bounds.
func (roundTicks) Ticks(lo, hi float64) []plot.Tick {
	if !(hi > lo) {
		return []plot.Tick{{Value: lo, Label: digits(lo, 3)}}
	}
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, m := range []float64{5, 2} {
		if (hi-lo)/(step*m) >= 4 {
			step *= m
			break
		}
	}
	var out []plot.Tick
	for i := math.Ceil(lo/step) + 0; i*step <= hi; i++ { // + 0 turns -0 into 0
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(math.Round(i*step*1e6)/1e6, 'f', -1, 64)})
	}
	return out
}
