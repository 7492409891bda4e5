# frozen_string_literal: true

require_relative 'render'

# What came out of the chart's templates. Nothing here has defaults: a key that the chart stops writing must be noticed.
module Settings
  def self.path(name) = File.join(Render.target, name)
  def self.there?(name) = File.exist?(path(name))

  def self.production(name)
    Render.yaml(File.read(path(name))).fetch('production')
  end

  # database.yml: host, port, database, username, password.
  def self.database = production('database.yml').fetch('main')

  # resque.yml: a redis:// URL with the password in it.
  def self.redis_url = production('resque.yml').fetch('url')

  def self.gitlab = production('gitlab.yml')

  # The Fog connection of the Secret gitlab-rails-storage and one bucket to ask for; nil when object storage is off.
  def self.object_store
    store = gitlab['object_store']
    return nil unless store && store['enabled']

    {connection: store.fetch('connection'), bucket: store.fetch('objects').fetch('artifacts').fetch('bucket')}
  end

  # secrets.yml as mounted from gitlab-rails-secret.
  def self.rails_secrets = production('secrets.yml')
end
