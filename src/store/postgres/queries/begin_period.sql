SELECT $schema$.begin_period_()
