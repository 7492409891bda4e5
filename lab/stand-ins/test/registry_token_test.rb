# frozen_string_literal: true

require_relative 'expect'
require_relative '../lib/registry_token'

# RFC 7638, section 3.1: the example key and its thumbprint.
modulus = '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs' \
          'tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbIS' \
          'D08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw'
number = ->(text) { OpenSSL::BN.new(text.tr('-_', '+/').unpack1('m'), 2) }
sequence = OpenSSL::ASN1::Sequence([OpenSSL::ASN1::Integer(number.(modulus)), OpenSSL::ASN1::Integer(65_537)])
Expect.equal('thumbprint of RFC 7638', 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs', RegistryToken.thumbprint(OpenSSL::PKey::RSA.new(sequence.to_der)))

granted = RegistryToken.method(:granted)
Expect.equal('anybody pulls what is public', [{type: 'repository', name: 'public/a', actions: ['pull']}], granted.(['repository:public/a:pull,push'], admin: false))
Expect.equal('nobody pulls what is private', [], granted.(['repository:private/a:pull'], admin: false))
Expect.equal('a repository beside public/ is not public', [], granted.(['repository:publicity/a:pull'], admin: false))
Expect.equal('root pushes', [{type: 'repository', name: 'private/a', actions: %w[pull push]}], granted.(['repository:private/a:pull,push'], admin: true))

key = OpenSSL::PKey::RSA.new(2048)
head, claims, mark = RegistryToken.sign([], subject: 'root', service: 's', issuer: 'i', key: key, now: 1000).split('.')
Expect.equal('the signature is that of the key', true, key.public_key.verify('SHA256', mark.tr('-_', '+/').unpack1('m'), "#{head}.#{claims}"))
