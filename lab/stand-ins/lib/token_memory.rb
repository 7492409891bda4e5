# frozen_string_literal: true

require 'fileutils'
require 'openssl'
require 'securerandom'

# Remembers a secret's digest in a volume, so that a volume which comes back with another secret is noticed. The real
# Gitaly would serve such a volume; the stand-in refuses, to make a lost Secret visible.
class TokenMemory
  class Changed < StandardError; end

  def initialize(folder)
    @folder = File.join(folder, '.stand-in')
    @file = File.join(@folder, 'token-digest')
  end

  # Answers :remembered on the first call for a volume, :same afterwards; raises when the token is another one.
  def check(token)
    if File.exist?(@file)
      salt, digest = File.read(@file).strip.split(':', 2)
      return :same if digest && OpenSSL.secure_compare(self.class.digest(salt, token), digest)

      raise Changed, 'the token is not the one this volume was first used with: gitlab-gitaly-secret was minted anew; restore the old Secret'
    end
    remember(token)
  end

  def self.digest(salt, token) = OpenSSL::Digest::SHA256.hexdigest("#{salt}#{token}")

  private

  def remember(token)
    FileUtils.mkdir_p(@folder)
    salt = SecureRandom.hex(16)
    File.write("#{@file}.new", "#{salt}:#{self.class.digest(salt, token)}\n", perm: 0o600)
    File.rename("#{@file}.new", @file)
    :remembered
  end
end
