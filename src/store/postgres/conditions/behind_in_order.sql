r.behind
