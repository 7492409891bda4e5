# frozen_string_literal: true

require_relative 'postgres'

# The tables of the stand-ins, in GitLab's own database under GitLab's own names where it has them.
module Schema
  VERSION = '20261101000000'
  TABLES = <<~SQL
    create table if not exists schema_migrations (version text primary key);
    create table if not exists users (
      id bigserial primary key, username text not null unique, email text not null, admin boolean not null default false,
      encrypted_password text not null, created_at timestamptz not null default now(), updated_at timestamptz not null default now());
    create table if not exists personal_access_tokens (
      id bigserial primary key, user_id bigint not null references users(id), name text not null,
      token_digest text not null unique, created_at timestamptz not null default now());
    create table if not exists ci_runners (
      id bigserial primary key, description text, token text not null unique, runner_type text not null,
      tag_list text not null default '', run_untagged boolean not null default true,
      created_at timestamptz not null default now(), contacted_at timestamptz);
    create table if not exists stand_in_canary (id integer primary key, sealed text not null);
  SQL

  # An advisory lock keeps two migrations from running side by side.
  def self.migrate
    Postgres.open do |connection|
      connection.transaction do
        connection.exec('select pg_advisory_xact_lock(19011)')
        connection.exec(TABLES)
        connection.exec_params('insert into schema_migrations (version) values ($1) on conflict do nothing', [VERSION])
      end
    end
  end

  def self.check
    Postgres.value('select version from schema_migrations where version = $1', [VERSION]) or raise "schema #{VERSION} is not there yet"
  rescue PG::UndefinedTable
    raise "schema #{VERSION} is not there yet"
  end
end
