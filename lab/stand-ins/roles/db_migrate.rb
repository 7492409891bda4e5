# frozen_string_literal: true

require_relative '../lib/accounts'
require_relative '../lib/rails_secret'
require_relative '../lib/schema'

# /scripts/db-migrate: makes the tables, the first root account and the canary. What is there already stays as it is.
Schema.migrate
say "schema #{Schema::VERSION}"

password_file = Settings.path('initial_root_password')
if Accounts.find('root')
  say 'root is there already: the initial password is not looked at'
else
  password = File.exist?(password_file) ? File.read(password_file).strip : ''
  abort "#{password_file}: expected at least #{Accounts::MINIMUM_LENGTH} characters, found #{password.length}" if password.length < Accounts::MINIMUM_LENGTH
  say(Accounts.seed_root(password) ? 'root was made with the initial password' : 'root was made by somebody else meanwhile')
end

RailsSecret.plant
begin
  say RailsSecret.check
rescue RailsSecret::Lost => e
  # GitLab's own migrations do not notice either; the web service will not get ready.
  say "WARNING: #{e.message}"
end
