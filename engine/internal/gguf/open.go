package gguf

import (
	"errors"
	"fmt"
)

const (
	maxLayers = 1 << 14
	maxShards = 1 << 12
)

// Open reads the layout of the model at path; of a split model path may be any
// shard. A dense model is no error: it has no ExpertTensors.
func Open(path string) (*Model, error) {
	first, err := readShard(path)
	if err != nil {
		return nil, err
	}
	shards, err := siblings(first)
	if err != nil {
		return nil, err
	}
	m := &Model{Path: path}
	for _, s := range shards {
		m.Shards = append(m.Shards, s.path)
		m.Sizes = append(m.Sizes, s.size)
	}
	kv := newMeta(shards[0].file.Header.MetadataKV)
	if err := m.describe(kv, shards[0].used); err != nil {
		return nil, &FileError{m.Shards[0], err}
	}
	if err := m.place(shards); err != nil {
		return nil, err
	}
	if want := kv.num("split.tensors.count", -1); len(shards) > 1 && want >= 0 && want != m.tensorCount() {
		return nil, &FileError{m.Shards[0], fmt.Errorf("header says the shards hold %d tensors together, they hold %d", want, m.tensorCount())}
	}
	m.finish(kv)
	return m, nil
}

func (m *Model) tensorCount() int { return len(m.ExpertTensors) + len(m.Dense) + len(m.Unused) }

// siblings reads the other shards of the model that s is part of.
func siblings(s *shard) ([]*shard, error) {
	count := newMeta(s.file.Header.MetadataKV).num("split.count", 1)
	if count <= 1 {
		return []*shard{s}, nil
	}
	if count > maxShards {
		return nil, &FileError{s.path, fmt.Errorf("header says %d shards; at most %d are read", count, maxShards)}
	}
	paths, err := shardPaths(s.path, count)
	if err != nil {
		return nil, &FileError{s.path, err}
	}
	out := make([]*shard, count)
	for i, p := range paths {
		out[i] = s
		if p != s.path {
			if out[i], err = readShard(p); err != nil {
				return nil, shardError(err, p, i, count)
			}
		}
		if err := checkSibling(out[i], i, count); err != nil {
			return nil, &FileError{p, err}
		}
	}
	return out, nil
}

// shardError names the shard that cannot be opened; a shard that is there but
// wrong keeps its own error.
func shardError(err error, path string, i, count int) error {
	var fe *FileError
	if errors.As(err, &fe) && notThere(fe.Err) {
		return &MissingShardError{Path: path, Index: i + 1, Count: count, Err: fe.Err}
	}
	return err
}

func checkSibling(s *shard, i, count int) error {
	if n := newMeta(s.file.Header.MetadataKV).num("split.count", 1); n != count {
		return fmt.Errorf("header says %d shards, the others say %d", n, count)
	}
	if s.splitNo >= 0 && s.splitNo != i {
		return fmt.Errorf("header says it is shard %d, its name says %d", s.splitNo+1, i+1)
	}
	return nil
}

// describe fills what the metadata says; used is the experts used where the
// file has a list of them by layer.
func (m *Model) describe(kv meta, used int) error {
	m.Name = kv.text("general.name")
	m.Arch = kv.text("general.architecture")
	if m.Arch == "" {
		return errors.New("header has no general.architecture")
	}
	m.Layers = kv.num(m.Arch+".block_count", 0)
	if m.Layers == 0 {
		return fmt.Errorf("header has no %s.block_count: this is not a language model", m.Arch)
	}
	if m.Layers > maxLayers {
		return fmt.Errorf("header says %d layers; at most %d are read", m.Layers, maxLayers)
	}
	m.MTPLayers = kv.num(m.Arch+".nextn_predict_layers", 0)
	if m.MTPLayers > 0 && m.MTPLayers >= m.Layers {
		return fmt.Errorf("header says %d of %d layers are for multi-token prediction", m.MTPLayers, m.Layers)
	}
	m.Experts = kv.num(m.Arch+".expert_count", 0)
	m.ExpertsUsed = kv.num(m.Arch+".expert_used_count", used)
	if m.ExpertsUsed > m.Experts {
		return fmt.Errorf("header says %d of %d experts are used", m.ExpertsUsed, m.Experts)
	}
	m.ContextSize = kv.num(m.Arch+".context_length", 0)
	m.Embedding = kv.num(m.Arch+".embedding_length", 0)
	heads := kv.nums(m.Arch+".attention.head_count", m.Layers)
	m.HeadsKV = kv.nums(m.Arch+".attention.head_count_kv", m.Layers)
	if m.HeadsKV == nil {
		m.HeadsKV = heads
	}
	perHead := 0
	if len(heads) > 0 && heads[0] > 0 {
		perHead = m.Embedding / heads[0]
	}
	m.KeyLength = kv.num(m.Arch+".attention.key_length", perHead)
	m.ValueLength = kv.num(m.Arch+".attention.value_length", perHead)
	return nil
}

// finish fills what needs the tensors as well.
func (m *Model) finish(kv meta) {
	m.TiedHead = true
	for i := range m.Dense {
		switch m.Dense[i].Name {
		case "output.weight":
			m.TiedHead = false
		case "token_embd.weight":
			if len(m.Dense[i].Dims) == 2 {
				m.VocabSize = int(m.Dense[i].Dims[1])
			}
		}
	}
	if m.VocabSize == 0 {
		m.VocabSize = max(kv.num(m.Arch+".vocab_size", 0), kv.length("tokenizer.ggml.tokens"))
	}
}
