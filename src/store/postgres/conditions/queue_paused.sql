q.paused
