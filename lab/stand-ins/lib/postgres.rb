# frozen_string_literal: true

require 'pg'
require_relative 'settings'

# PostgreSQL with the account out of database.yml. A connection lives for one piece of work only, so a changed password
# or a stopped server shows at once and no idle client delays PostgreSQL's shutdown.
module Postgres
  CONNECT_SECONDS = 3

  def self.open(settings = Settings.database)
    connection = PG.connect(
      host: settings.fetch('host'), port: settings.fetch('port'), dbname: settings.fetch('database'),
      user: settings.fetch('username'), password: settings.fetch('password').to_s,
      connect_timeout: CONNECT_SECONDS, options: '-c statement_timeout=5000'
    )
    connection.set_notice_processor { |_| nil }
    yield connection
  ensure
    connection&.close
  end

  # Rows as hashes with string keys.
  def self.rows(sql, parameters = [])
    open { |connection| connection.exec_params(sql, parameters).to_a }
  end

  def self.value(sql, parameters = []) = rows(sql, parameters).first&.values&.first

  # Says who is connected where; raises when it cannot.
  def self.check
    value("select current_user || '@' || current_database() || ' ' || current_setting('server_version')")
  end
end
