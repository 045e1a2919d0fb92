SELECT has_database_privilege(current_database(), 'CREATE'), current_user::text, current_database()::text
