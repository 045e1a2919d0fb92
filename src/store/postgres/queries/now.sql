SELECT $schema$.now_()
