package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmoe/bmoe/analysis"
	"github.com/bmoe/bmoe/reports"
)

// resultsDir is the folder under --docs that is generated whole, and sampleDB
// the ledger in it that the documents are generated from.
const (
	resultsDir = "results"
	sampleDB   = "sample.db"
)

// generated is a file as it should be.
type generated struct {
	path  string
	bytes []byte
}

// reportDocs rewrites, or checks, everything under f.docs that is generated.
func reportDocs(ctx context.Context, a *app, f reportFlags, ownDB bool) error {
	if info, err := os.Stat(f.docs); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--docs %s is no folder", f.docs), "give the folder of the documents"}
	}
	db := filepath.Join(f.docs, resultsDir, sampleDB)
	if ownDB {
		db = a.dbPath
	}
	var d reports.Data
	pages := false
	if _, err := os.Stat(db); err == nil || ownDB {
		if d, err = loadReport(ctx, db, f); err != nil {
			return err
		}
		pages = true
	}
	want, err := generateDocs(f.docs, d, pages)
	if err != nil {
		return err
	}
	stale, err := staleFiles(f.docs, want, pages)
	if err != nil {
		return err
	}
	if f.check {
		return a.checkDocs(want, stale)
	}
	for _, g := range want {
		if err := writeFiles(filepath.Dir(g.path), []reports.File{{Name: filepath.Base(g.path), Bytes: g.bytes}}); err != nil {
			return err
		}
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s generated from %s, %d removed\n", f.docs, analysis.Count(len(want), "file"), analysis.Count(len(d.Runs), "run"), len(stale))
	return err
}

// generateDocs renders the pages under results, if there is a ledger for them,
// and the documents that have regions.
func generateDocs(dir string, d reports.Data, pages bool) ([]generated, error) {
	doc, err := reports.New(d)
	if err != nil {
		return nil, err
	}
	var out []generated
	if pages {
		if out, err = resultPages(filepath.Join(dir, resultsDir), doc); err != nil {
			return nil, err
		}
	}
	documents, err := markdownFiles(dir)
	if err != nil {
		return nil, err
	}
	for _, path := range documents {
		old, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(old, []byte("<!-- bmoe:")) {
			continue
		}
		figures, err := filepath.Rel(filepath.Dir(path), filepath.Join(dir, resultsDir))
		if err != nil {
			return nil, err
		}
		regions, err := d.Regions(doc, filepath.ToSlash(figures)+"/")
		if err != nil {
			return nil, err
		}
		fresh, err := regions.Rewrite(old)
		if err != nil {
			return nil, codedError{fmt.Errorf("%s, %w", path, err), exitFailure, "give the region one of the names listed, or delete it"}
		}
		out = append(out, generated{path, fresh})
	}
	return out, nil
}

// resultPages is the whole report as markdown and as one page for a browser, the page of what was no win, and the plots.
func resultPages(dir string, doc *reports.Document) ([]generated, error) {
	page, err := doc.Markdown("")
	if err != nil {
		return nil, err
	}
	html, err := doc.HTML()
	if err != nil {
		return nil, err
	}
	out := []generated{{filepath.Join(dir, "report.md"), page}, {filepath.Join(dir, "report.html"), html}}
	for _, s := range doc.Sections {
		if s.ID == "negative" {
			only := reports.Document{Title: s.Title, Sections: []reports.Section{s}}
			if page, err = only.Markdown(""); err != nil {
				return nil, err
			}
			out = append(out, generated{filepath.Join(dir, "negative.md"), page})
		}
	}
	for _, f := range doc.Figures() {
		svg, err := f.SVG()
		if err != nil {
			return nil, err
		}
		out = append(out, generated{filepath.Join(dir, f.Name+".svg"), svg})
	}
	return out, nil
}

// markdownFiles returns the documents that may hold regions: those under dir
// but for what is generated whole, and the README beside it.
func markdownFiles(dir string) ([]string, error) {
	var out []string
	readme := filepath.Join(filepath.Dir(filepath.Clean(dir)), "README.md")
	if _, err := os.Stat(readme); err == nil {
		out = append(out, readme)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && path == filepath.Join(dir, resultsDir) {
			return fs.SkipDir
		}
		if !e.IsDir() && strings.HasSuffix(path, ".md") {
			out = append(out, path)
		}
		return nil
	})
	return out, err
}

// staleFiles returns the generated files under results that are generated no
// more.
func staleFiles(dir string, want []generated, pages bool) (out []string, err error) {
	if !pages {
		return nil, nil
	}
	found, err := os.ReadDir(filepath.Join(dir, resultsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		path := filepath.Join(dir, resultsDir, e.Name())
		if filepath.Ext(path) == ".svg" && !slices.ContainsFunc(want, func(g generated) bool { return g.path == path }) {
			out = append(out, path)
		}
	}
	return out, nil
}

// checkDocs fails when a file is not as it should be, and shows where.
func (a *app) checkDocs(want []generated, stale []string) error {
	bad := 0
	for _, g := range want {
		old, err := os.ReadFile(g.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if diff := reports.Difference(old, g.bytes); diff != "" || err != nil {
			bad++
			fmt.Fprintf(a.stdout, "%s, %s", g.path, diff)
		}
	}
	for _, path := range stale {
		bad++
		fmt.Fprintf(a.stdout, "%s: no longer generated\n", path)
	}
	if bad > 0 {
		return withHint(fmt.Errorf("%s out of date", analysis.Count(bad, "generated file")), "`bmoe report --docs DIR` rewrites them; commit what it wrote")
	}
	return nil
}
