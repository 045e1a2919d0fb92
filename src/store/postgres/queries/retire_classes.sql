SELECT $schema$.retire_classes_()
