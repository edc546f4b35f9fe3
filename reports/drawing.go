package reports

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"runtime"
	"sync"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/sync/errgroup"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// drawing is a plot that is drawn once somebody looks at it: a page on standard
// output names its plots and draws none.
type drawing struct {
	mu     sync.Mutex // drawing changes a plot
	plot   *plot.Plot
	height vg.Length
	svg    []byte
	png    []byte
}

// SVG draws the figure as SVG.
func (f Figure) SVG() ([]byte, error) {
	d := f.drawing
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.svg != nil {
		return d.svg, nil
	}
	canvas := vgsvg.New(plotWidth, d.height)
	paper := vgdraw.New(canvas)
	paper.SetColor(color.White)
	paper.Fill(paper.Path())
	d.plot.Draw(margins(paper))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("plot %s: %w", f.Name, err)
	}
	// The file names one font only; say what to take where it is missing.
	d.svg = bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))
	return d.svg, nil
}

// PNG draws the figure as PNG, in greys.
func (f Figure) PNG() ([]byte, error) {
	d := f.drawing
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.png != nil {
		return d.png, nil
	}
	size := image.Rect(0, 0, pixels(plotWidth), pixels(d.height))
	img := canvases.Get().(*image.RGBA)
	defer canvases.Put(img)
	if need := 4 * size.Dx() * size.Dy(); cap(img.Pix) < need {
		img.Pix = make([]byte, need)
	} else {
		img.Pix = img.Pix[:need]
	}
	img.Stride, img.Rect = 4*size.Dx(), size
	ctx := gg.NewContextForRGBA(img) // vgimg's own copies an empty image first
	ctx.SetLineCapButt()
	ctx.InvertY()
	canvas := vgimg.NewWith(vgimg.UseDPI(plotDPI), vgimg.UseImageWithContext(img, ctx)) // white
	d.plot.Draw(margins(vgdraw.New(canvas)))
	var b bytes.Buffer
	if err := encoder.Encode(&b, greys(img)); err != nil {
		return nil, fmt.Errorf("plot %s: %w", f.Name, err)
	}
	d.png = b.Bytes()
	return d.png, nil
}

func pixels(l vg.Length) int { return int(l.Dots(plotDPI) + 0.5) }

// canvases are drawn on again and again: fresh pages cost more than lines.
var canvases = sync.Pool{New: func() any { return new(image.RGBA) }}

// encoder favours speed: a few lines on white make a small file anyway.
var encoder = png.Encoder{CompressionLevel: png.BestSpeed, BufferPool: new(buffers)}

type buffers struct{ pool sync.Pool }

// Get is nil where there is none: the encoder then makes one.
func (b *buffers) Get() *png.EncoderBuffer {
	buf, _ := b.pool.Get().(*png.EncoderBuffer)
	return buf
}

// Put keeps a buffer for the next image.
func (b *buffers) Put(buf *png.EncoderBuffer) { b.pool.Put(buf) }

// greys keeps one channel of an image without colours: a quarter of the bytes
// to compress.
func greys(img *image.RGBA) *image.Gray {
	out := image.NewGray(img.Rect)
	for i := range out.Pix {
		out.Pix[i] = img.Pix[4*i]
	}
	return out
}

// workers is a group as large as there are processors: more would only hold
// more half-drawn images.
func workers() *errgroup.Group {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	return &g
}
