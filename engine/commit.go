package engine

// CommitAhead commits the expert cache's memory in the background, so that the
// first reads into it do not wait for pages to be found and cleared. Room says
// how many bytes may still be held; near none it stops, and what is left is
// committed as experts land in it. Without a cache it does nothing.
func (s *Session) CommitAhead(room func() int64) {
	if s.stream != nil {
		s.stream.Populate(room)
	}
}
