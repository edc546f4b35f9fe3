package probes

// drive is the file under test and what the kernel says about reads of it. It
// is small so that tests can stand in a drive that lies, slows down or fails.
type drive interface {
	// place says which file system holds it.
	place() place
	// size is the file's length and stored how much of it is on the drive: a
	// sparse file stores less. Bytes.
	size() (size, stored int64)
	// align is the direct-read alignment; stated is false where the kernel did
	// not say and the fall-back stands.
	align() (bytes int64, stated bool)
	// lane opens one reader with its own descriptor and a buffer for requests
	// of up to most bytes.
	lane(direct bool, most int64) (lane, error)
	// served counts the bytes this process has had fetched from storage; false
	// where that is not accounted.
	served() (int64, bool)
	// cached counts the bytes of a range that the page cache holds; false where
	// the kernel does not tell.
	cached(off, n int64) (int64, bool)
	// forget drops a range from the page cache.
	forget(off, n int64)
	// mapped keeps a live mapping of the whole file until the function it
	// returns is called.
	mapped() (release func(), err error)
	close()
}

// lane is one reader. It is used by one goroutine at a time.
type lane interface {
	// read fetches [off, off+n) and returns those bytes, valid until the next
	// read. Fewer come back only at the end of the file.
	read(off, n int64) ([]byte, error)
	close()
}
