# frozen_string_literal: true

require 'tmpdir'
require_relative 'expect'
require_relative '../lib/token_memory'

Dir.mktmpdir do |volume|
  Expect.equal('a fresh volume takes any token', :remembered, TokenMemory.new(volume).check('one'))
  Expect.equal('the same token again', :same, TokenMemory.new(volume).check('one'))
  Expect.raises('another token', TokenMemory::Changed) { TokenMemory.new(volume).check('two') }
  File.write(File.join(volume, '.stand-in', 'token-digest'), '')
  Expect.raises('a truncated memory', TokenMemory::Changed) { TokenMemory.new(volume).check('one') }
end
