package compare

// sameRun is how many records in a row have to be equal for two places to
// count as the same; fewer where a side has no more.
const sameRun = 8

// settle tells the difference at the head of the two sides and drops what it
// is made of.
func (o *Ordered) settle() {
	source, target := hashes(o.source.records), hashes(o.target.records)
	i, j := align(source, target)
	o.explain(o.source.records[:i], o.target.records[:j], source[:i], target[:j])
	o.source.drop(i)
	o.target.drop(j)
}

func hashes(records []Record) []uint64 {
	hs := make([]uint64, len(records))
	for i := range records {
		hs[i] = records[i].hash()
	}
	return hs
}

// align finds the smallest numbers of records to drop from each side so that
// the rest begins alike. Without such a place everything is dropped.
func align(source, target []uint64) (i, j int) {
	for sum := 1; sum < len(source)+len(target); sum++ {
		for i := max(0, sum-len(target)); i <= min(sum, len(source)); i++ {
			if alike(source[i:], target[sum-i:]) {
				return i, sum - i
			}
		}
	}
	return len(source), len(target)
}

func alike(source, target []uint64) bool {
	n := min(sameRun, len(source), len(target))
	for k := range n {
		if source[k] != target[k] {
			return false
		}
	}
	return n > 0
}

// explain sorts the records between two places that are alike into kinds.
func (o *Ordered) explain(source, target []Record, sourceHashes, targetHashes []uint64) {
	inPlace := func(i int) bool {
		return len(source) == len(target) && sourceHashes[i] == targetHashes[i]
	}
	here := map[uint64][]int{} // source records by hash
	told := make([]bool, len(source))
	for i, h := range sourceHashes {
		if inPlace(i) {
			o.result.Equal++
			told[i] = true
			continue
		}
		here[h] = append(here[h], i)
	}
	var strangers []Record // target records that are not the source's
	for j, t := range target {
		h := targetHashes[j]
		switch {
		case inPlace(j):
		case len(here[h]) > 0:
			i := here[h][0]
			here[h] = here[h][1:]
			told[i] = true
			o.result.add(Difference{Kind: Reordered, SourceOffset: source[i].Offset, TargetOffset: t.Offset})
		case o.missing[h] > 0:
			o.missing[h]--
			o.result.count(Missing, -1)
			o.result.add(Difference{Kind: Reordered, SourceOffset: -1, TargetOffset: t.Offset,
				Detail: "came late, it was told missing"})
		case o.recent.has(h):
			o.result.add(Difference{Kind: Repeated, SourceOffset: -1, TargetOffset: t.Offset})
		default:
			strangers = append(strangers, t)
		}
	}
	for i, s := range source {
		switch {
		case told[i]:
		case len(strangers) > 0:
			t := strangers[0]
			strangers = strangers[1:]
			o.result.add(Difference{Kind: Changed, SourceOffset: s.Offset, TargetOffset: t.Offset, Detail: Diff(s, t)})
		default:
			o.result.add(Difference{Kind: Missing, SourceOffset: s.Offset, TargetOffset: -1})
			o.remember(sourceHashes[i])
		}
	}
	for _, t := range strangers {
		o.result.add(Difference{Kind: Unexpected, SourceOffset: -1, TargetOffset: t.Offset})
	}
}

// remember keeps a bounded number of records told missing.
func (o *Ordered) remember(h uint64) {
	if o.missing == nil {
		o.missing = map[uint64]int{}
	}
	if len(o.missing) < 4*windowRecords {
		o.missing[h]++
	}
}
