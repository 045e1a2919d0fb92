SELECT task FROM $schema$.idem_key WHERE tenant = $1::bigint AND key = $2::text AND expires_at > $schema$.now_()
