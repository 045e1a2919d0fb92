r.due > (SELECT t FROM n)
