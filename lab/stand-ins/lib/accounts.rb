# frozen_string_literal: true

require 'openssl'
require 'securerandom'
require_relative 'postgres'

# Users and their personal access tokens. Passwords are kept as PBKDF2-SHA512, tokens as SHA-256.
module Accounts
  ITERATIONS = 20_000
  MINIMUM_LENGTH = 8

  def self.hash(password, salt = SecureRandom.hex(16), iterations = ITERATIONS)
    digest = OpenSSL::KDF.pbkdf2_hmac(password, salt: salt, iterations: iterations, length: 64, hash: 'SHA512')
    "$pbkdf2-sha512$#{iterations}$#{salt}$#{digest.unpack1('H*')}"
  end

  def self.valid?(password, stored)
    _, scheme, iterations, salt, = stored.split('$')
    return false unless scheme == 'pbkdf2-sha512'

    OpenSSL.secure_compare(hash(password, salt, Integer(iterations)), stored)
  end

  def self.find(username)
    Postgres.rows('select * from users where username = $1', [username]).first
  end

  # The user when the password, or one of the user's access tokens, is right; otherwise nil.
  def self.login(username, password)
    user = find(username.to_s) or return nil
    return user if valid?(password.to_s, user['encrypted_password'])

    by_token(password)&.then { |owner| owner['id'] == user['id'] ? owner : nil }
  end

  def self.by_token(token)
    return nil if token.to_s.empty?

    Postgres.rows('select u.* from users u join personal_access_tokens t on t.user_id = u.id where t.token_digest = $1', [digest(token)]).first
  end

  # As GitLab's first seed does: only where there is no root yet. Answers whether one was made.
  def self.seed_root(password)
    made = Postgres.rows(<<~SQL, [hash(password)])
      insert into users (username, email, admin, encrypted_password) values ('root', 'admin@example.com', true, $1)
      on conflict (username) do nothing returning id
    SQL
    made.any?
  end

  def self.change_password(id, password)
    Postgres.rows('update users set encrypted_password = $2, updated_at = now() where id = $1', [id, hash(password)])
  end

  # A new access token of a user, in plain text; it cannot be read back later.
  def self.mint_token(user_id, name)
    token = "glpat-#{SecureRandom.urlsafe_base64(15)}"
    Postgres.rows('insert into personal_access_tokens (user_id, name, token_digest) values ($1, $2, $3)', [user_id, name, digest(token)])
    token
  end

  def self.digest(token) = OpenSSL::Digest::SHA256.hexdigest(token)
end
