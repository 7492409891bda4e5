# frozen_string_literal: true

require_relative 'render'

# What the entry point runs before a command that is not a stand-in itself.
Render.all
