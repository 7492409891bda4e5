# frozen_string_literal: true

require_relative 'expect'
require_relative '../lib/grpc_health'

Expect.equal('serving', true, GrpcHealth.answer(1, true).include?("\x00\x00\x00\x00\x02\x08\x01".b))
Expect.equal('not serving', true, GrpcHealth.answer(1, false).include?("\x00\x00\x00\x00\x02\x08\x02".b))
Expect.equal('an empty settings frame', "\x00\x00\x00\x04\x00\x00\x00\x00\x00".b, GrpcHealth.frame(GrpcHealth::SETTINGS, 0, 0, ''))
