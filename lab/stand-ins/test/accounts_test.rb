# frozen_string_literal: true

require_relative 'expect'
require_relative '../lib/accounts'

stored = Accounts.hash('correct horse')
Expect.equal('the password', true, Accounts.valid?('correct horse', stored))
Expect.equal('another password', false, Accounts.valid?('correct hors', stored))
Expect.equal('a hash of another kind', false, Accounts.valid?('x', '$2a$10$abc'))
Expect.equal('two hashes of one password differ', false, stored == Accounts.hash('correct horse'))
