# frozen_string_literal: true

require 'erb'
require 'fileutils'
require 'json'
require 'yaml'
require_relative 'log'

# Renders what the chart mounts in CONFIG_TEMPLATE_DIRECTORY into CONFIG_DIRECTORY, as the entry point of GitLab's own
# images does: ERB files with Ruby, .tpl files as far as they read secrets.
module Render
  # The one gomplate expression by which the chart's templates read secrets. Everything else of gomplate stays as it
  # is: gomplate cannot be had here, so nothing may rely on more of those files than on these values.
  SECRET = /\{%-?\s*file\.Read "(?<path>[^"]+)" \| strings\.TrimSpace \| data\.ToJSON\s*-?%\}/

  def self.source = ENV.fetch('CONFIG_TEMPLATE_DIRECTORY', nil)
  def self.target = ENV.fetch('CONFIG_DIRECTORY', '/srv/gitlab/config')

  # Renders every template; answers the paths that were written.
  def self.all
    return [] unless source && Dir.exist?(source)

    Dir.children(source).sort.filter_map do |name|
      path = File.join(source, name)
      next unless File.file?(path)

      case name
      when /\.erb\z/ then write(name.delete_suffix('.erb'), ERB.new(File.read(path), trim_mode: '-').result(TOPLEVEL_BINDING))
      when /\.tpl\z/ then write(name.delete_suffix('.tpl'), gomplate(File.read(path)))
      end
    end
  end

  def self.gomplate(text)
    text.gsub(SECRET) { File.read(Regexp.last_match[:path]).strip.to_json }
  end

  # YAML as the chart writes it: an address like `:8080` is a symbol to Ruby.
  def self.yaml(text) = YAML.safe_load(text, aliases: true, permitted_classes: [Symbol])

  def self.write(name, text)
    yaml(text) if name.match?(/\.ya?ml\z/) # a broken file is found here, not later
    path = File.join(target, name)
    FileUtils.mkdir_p(target)
    File.write(path, text, perm: 0o600)
    say "rendered #{path} (#{text.bytesize} bytes)"
    path
  end
end
