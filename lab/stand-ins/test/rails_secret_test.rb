# frozen_string_literal: true

require_relative 'expect'
require_relative '../lib/rails_secret'

old = RailsSecret.key('canary', {'db_key_base' => 'a' * 128, 'secret_key_base' => 'b' * 128})
minted_anew = RailsSecret.key('canary', {'db_key_base' => 'c' * 128, 'secret_key_base' => 'b' * 128})
sealed = RailsSecret.seal('text', old)
Expect.equal('the same secret reads it', 'text', RailsSecret.unseal(sealed, old))
Expect.raises('a secret minted anew does not', RailsSecret::Lost) { RailsSecret.unseal(sealed, minted_anew) }
