package probes

import "github.com/bmoe/bmoe/engine/model"

// place is where a file lives.
type place struct {
	name   string // of the file system
	dev    string // major:minor, as /sys spells it
	memory bool   // the file system is memory: a read of it is no storage read
	remote bool   // another process or machine serves it: its reads are not seen at this system's drives
}

// placeByMagic names a file system by its magic number.
func placeByMagic(magic uint32) place {
	if p, ok := fileSystems[magic]; ok {
		return p
	}
	return place{name: "unrecognised"}
}

// fileSystems are the magic numbers of statfs(2).
var fileSystems = map[uint32]place{
	0x01021994: {name: "tmpfs", memory: true},
	0x858458f6: {name: "ramfs", memory: true},
	0x958458f6: {name: "hugetlbfs", memory: true},
	0x0000ef53: {name: "ext4"},
	0x58465342: {name: "xfs"},
	0x9123683e: {name: "btrfs"},
	0x2fc12fc1: {name: "zfs", remote: true}, // reads through its own cache, unaccounted
	0xf2f52010: {name: "f2fs"},
	0xca451a4e: {name: "bcachefs"},
	0xe0f5e1e2: {name: "erofs"},
	0x73717368: {name: "squashfs"},
	0x00004d44: {name: "vfat"},
	0x2011bab0: {name: "exfat"},
	0x5346544e: {name: "ntfs"},
	0x7366746e: {name: "ntfs3"},
	0x794c7630: {name: "overlayfs"},
	0x65735546: {name: "fuse", remote: true},
	0x00006969: {name: "nfs", remote: true},
	0x01021997: {name: "9p", remote: true},
	0xff534d42: {name: "cifs", remote: true},
	0xfe534d42: {name: "smb2", remote: true},
	0x00c36400: {name: "ceph", remote: true},
}

// shardsOf lists a model's files.
func shardsOf(modelPath string) ([]string, error) {
	m, err := model.Open(modelPath)
	if err != nil {
		return nil, err
	}
	return m.Shards, nil
}
