package probes

import (
	"fmt"
	"strings"

	"github.com/bmoe/bmoe/planner"
)

// FactText is a fact's value for people: sizes and rates in binary units,
// lists on one line.
func FactText(f planner.FactLine) string {
	switch v := f.Value.(type) {
	case nil:
		return f.State
	case bool:
		return f.State
	case int64:
		if f.Unit == "bytes" {
			return size(v)
		}
		return unitText(fmt.Sprint(v), f.Unit)
	case float64:
		if f.Unit == "bytes/s" {
			return size(int64(v)) + "/s"
		}
		return unitText(fmt.Sprintf("%.4g", v), f.Unit)
	case []planner.RatePoint:
		return list(v, func(p planner.RatePoint) string {
			return fmt.Sprintf("%s x%d: %s/s", size(p.Size), p.Lanes, size(int64(p.BytesPerS)))
		})
	case []planner.SliceClass:
		return list(v, func(c planner.SliceClass) string {
			return fmt.Sprintf("%s %s %s in %d layers", c.Projection, c.Quant, size(c.Bytes), c.Layers)
		})
	case []planner.QuantShare:
		return list(v, func(q planner.QuantShare) string { return q.Quant + " " + size(q.Bytes) })
	case []planner.CoreClass:
		return list(v, func(c planner.CoreClass) string {
			return fmt.Sprintf("%d at capacity %d, %.0f MHz", c.Cores, c.Capacity, c.MaxMHz)
		})
	case []planner.WidthPoint:
		return list(v, func(p planner.WidthPoint) string { return fmt.Sprintf("%d wide: %s", p.Width, size(p.Bytes)) })
	}
	return unitText(fmt.Sprint(f.Value), f.Unit)
}

func list[T any](v []T, text func(T) string) string {
	parts := make([]string, len(v))
	for i, x := range v {
		parts[i] = text(x)
	}
	return strings.Join(parts, ", ")
}

func unitText(value, unit string) string {
	if unit == "" {
		return value
	}
	return value + " " + unit
}
