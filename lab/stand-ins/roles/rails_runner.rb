# frozen_string_literal: true

require_relative '../lib/rails'

# `gitlab-rails runner` of the toolbox: a script from standard input (-), a file or an argument, with the classes of
# lib/rails.rb. Like the real one it says a few things on standard output before the script does.
environment = ARGV.each_cons(2).find { |name, _| %w[-e --environment].include?(name) }
arguments = environment ? ARGV - environment : ARGV
command, source, = arguments
abort "gitlab-rails stand-in: only 'runner' is answered, got #{command.inspect}" unless %w[runner r].include?(command)
abort 'gitlab-rails runner: expected -, a file or a script' unless source
abort "#{Settings.path('database.yml')} is not there: the configuration was not rendered" unless Settings.there?('database.yml')

script, name = case source
               when '-' then [$stdin.read, 'stdin']
               else File.exist?(source) ? [File.read(source), source] : [source, 'argument']
               end
puts 'Loading production environment (GitLab stand-in 19.1.1)'
puts 'DEPRECATION WARNING: this line is here because the real gitlab-rails talks on standard output, too.'
$stdout.flush
eval(script, TOPLEVEL_BINDING.dup, name) # rubocop:disable Security/Eval -- this is what `runner` is for
