package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/bmoe/bmoe/engine/internal/gguf"
	"github.com/bmoe/bmoe/engine/internal/llama"
	"github.com/bmoe/bmoe/engine/internal/rpcdev"
	"github.com/bmoe/bmoe/engine/internal/rpclink"
)

// placement is which layers lie on devices, as llama.cpp places them: the last
// --gpu-layers of the model, its output counted as one. A nil placement has
// everything on the host.
type placement struct {
	first int // layer on a device
	devs  []llama.Device
	names []string // of the devices, as this run calls them
	split []float32
	links []*rpclink.Link
	host  []*regexp.Regexp // tensors of those layers that stay with the host
	text  []string         // the same, as they were given
	bytes int64            // put on devices
}

// place reads the placement knobs.
func (s *Session) place(ctx context.Context) (*placement, error) {
	c := &s.cfg
	if c.GPULayers == 0 {
		if c.DeviceSplit != "" {
			return nil, fmt.Errorf("--device-split %s: no layers are placed on devices; add --gpu-layers", c.DeviceSplit)
		}
		return nil, nil
	}
	p := &placement{first: max(0, s.layout.Layers+1-c.GPULayers)}
	if err := p.readOverrides(c.OverrideTensor); err != nil {
		return nil, err
	}
	var err error
	if c.DeviceSplit != "" {
		err = p.readSplit(ctx, s)
	} else {
		err = p.all(ctx, s)
	}
	return p, err
}

func (p *placement) readOverrides(text string) error {
	for _, o := range strings.Split(text, ",") {
		if o = strings.TrimSpace(o); o == "" {
			continue
		}
		pattern, buffer, ok := strings.Cut(o, "=")
		if !ok || buffer != "CPU" {
			return fmt.Errorf("--override-tensor %s: want PATTERN=CPU: layers are sent to devices by --gpu-layers, and this keeps tensors of theirs on the host", o)
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return fmt.Errorf("--override-tensor %s: %w", o, err)
		}
		p.host, p.text = append(p.host, re), append(p.text, pattern)
	}
	return nil
}

// readSplit takes the devices and each one's count of layers.
func (p *placement) readSplit(ctx context.Context, s *Session) error {
	placed := 0
	for _, part := range strings.Split(s.cfg.DeviceSplit, ",") {
		name, count, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 0 {
			return fmt.Errorf("--device-split %s: want NAME=LAYERS[,NAME=LAYERS]", s.cfg.DeviceSplit)
		}
		dev, link, err := s.deviceNamed(ctx, name)
		if err != nil {
			return fmt.Errorf("--device-split: %w", err)
		}
		if slices.Contains(p.names, name) {
			return fmt.Errorf("--device-split %s: %s is named twice; give each device one count", s.cfg.DeviceSplit, name)
		}
		p.add(name, dev, link)
		p.split = append(p.split, float32(n))
		placed += n
	}
	if want := min(s.cfg.GPULayers, s.layout.Layers+1); placed != want {
		return fmt.Errorf("--device-split %s: it counts %d layers, --gpu-layers places %d (the output is one); make the two agree", s.cfg.DeviceSplit, placed, want)
	}
	return nil
}

// all takes every device the run may use: the servers of --rpc first, as
// llama.cpp does.
func (p *placement) all(ctx context.Context, s *Session) error {
	for _, srv := range s.connect(ctx) {
		if srv.Err != nil {
			return srv.Err
		}
		for _, d := range srv.Devices {
			p.add(rpcdev.Name(len(p.devs)), d, srv.Link)
		}
	}
	infos, err := llama.Devices()
	if err != nil {
		return err
	}
	for i := range infos {
		if k := infos[i].Kind; (k == llama.DeviceGPU || k == llama.DeviceIGPU) && !strings.HasPrefix(infos[i].Name, "RPC") {
			d, err := llama.FindDevice(infos[i].Name)
			if err != nil {
				return err
			}
			p.add(infos[i].Name, d, nil)
		}
	}
	if len(p.devs) == 0 {
		return fmt.Errorf("--gpu-layers %d: this run sees no device beside the processor; name an RPC server with --rpc, or drop the flag", s.cfg.GPULayers)
	}
	return nil
}

func (p *placement) add(name string, d llama.Device, link *rpclink.Link) {
	p.devs, p.names = append(p.devs, d), append(p.names, name)
	if link != nil {
		p.links = append(p.links, link)
	}
}

var blockName = regexp.MustCompile(`^blk\.(\d+)\.`)

// onHost reports whether a tensor stays with the host.
func (p *placement) onHost(name string) bool {
	if p == nil {
		return true
	}
	m := blockName.FindStringSubmatch(name)
	if m == nil {
		return false // llama.cpp knows: the input stays, the output goes
	}
	if layer, _ := strconv.Atoi(m[1]); layer < p.first {
		return true
	}
	for _, re := range p.host {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// hostExperts are the expert tensors that are streamed. A layer's experts are
// served as a set, so a layer that would be divided is refused.
func (p *placement) hostExperts(m *gguf.Model) ([]*gguf.ExpertTensor, error) {
	var out []*gguf.ExpertTensor
	side := map[int]bool{}
	for i := range m.ExpertTensors {
		t := &m.ExpertTensors[i]
		host := p.onHost(t.Name)
		if other, seen := side[t.Layer]; seen && other != host {
			return nil, fmt.Errorf("--override-tensor: %s would be parted from the other experts of layer %d, which are served as a set; keep all of blk.%d's _exps tensors on the host, or none", t.Name, t.Layer, t.Layer)
		}
		side[t.Layer] = host
		if host {
			out = append(out, t)
		}
	}
	return out, nil
}

// densePatterns are the other tensors that stay with the host.
func (p *placement) densePatterns(m *gguf.Model) []string {
	if p == nil {
		return nil
	}
	out := []string{}
	if p.first > 0 {
		layers := make([]string, p.first)
		for i := range layers {
			layers[i] = strconv.Itoa(i)
		}
		out = append(out, `^blk\.(`+strings.Join(layers, "|")+`)\.`)
	}
	for i := range m.Dense {
		name := m.Dense[i].Name
		if b := blockName.FindStringSubmatch(name); b != nil && p.onHost(name) {
			if layer, _ := strconv.Atoi(b[1]); layer >= p.first {
				out = append(out, "^"+regexp.QuoteMeta(name)+"$")
			}
		}
	}
	return out
}

// params are what llama.cpp loads the placement with.
func (p *placement) params(lp *llama.ModelParams, layers int) {
	if p != nil {
		lp.GPULayers, lp.Devices, lp.Split, lp.Host = layers, p.devs, p.split, p.text
	}
}

// upload finds a device's tensor in the file and fills it.
func (s *Session) upload(t llama.Tensor) error {
	m, name := s.layout, t.Name()
	var f *gguf.Tensor
	for i := range m.ExpertTensors {
		if m.ExpertTensors[i].Name == name {
			f = &m.ExpertTensors[i].Tensor
		}
	}
	for i := range m.Dense {
		if m.Dense[i].Name == name {
			f = &m.Dense[i]
		}
	}
	if f == nil || t.Bytes() != f.Bytes {
		return fmt.Errorf("%s: tensor %s, which llama.cpp puts on a device, is not in the file in the size it expects", m.Path, name)
	}
	return s.placed.upload(m, t, f)
}

const uploadStep = 8 << 20

// upload fills a tensor in a device's memory, a step at a time.
func (p *placement) upload(m *gguf.Model, t llama.Tensor, f *gguf.Tensor) error {
	file, err := os.Open(m.Shards[f.Shard])
	if err != nil {
		return err
	}
	defer file.Close()
	buf := make([]byte, min(f.Bytes, uploadStep))
	for off := int64(0); off < f.Bytes; off += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), f.Bytes-off)]
		if _, err := file.ReadAt(buf, f.Offset+off); err != nil && err != io.EOF {
			return fmt.Errorf("reading tensor %s for a device: %w", f.Name, err)
		}
		t.Set(buf, off)
	}
	p.bytes += f.Bytes
	return nil
}

// lost is how a server that layers lie on was lost, or nil.
func (p *placement) lost() error {
	if p == nil {
		return nil
	}
	for _, l := range p.links {
		if err := l.Err(); err != nil {
			return fmt.Errorf("layers lie on it: %w; start it again, or leave out --gpu-layers", err)
		}
	}
	return nil
}

func (p *placement) watch(abort func()) {
	if p == nil {
		return
	}
	for _, l := range p.links {
		if abort == nil {
			l.OnLoss(nil)
		} else {
			l.OnLoss(func(error) { abort() })
		}
	}
}
