# frozen_string_literal: true

require 'tmpdir'
require_relative 'expect'
require_relative '../lib/render'

Expect.equal('an address without a host', ':8080', Render.yaml('address: :8080')['address'].inspect.delete('"'))

Dir.mktmpdir do |folder|
  File.write(File.join(folder, 'pw'), "a\"b\n")
  text = %(Password = {% file.Read "#{folder}/pw" | strings.TrimSpace | data.ToJSON %}\n{% other %}\n)
  Expect.equal('secrets are filled in, the rest of gomplate stays', %(Password = "a\\"b"\n{% other %}\n), Render.gomplate(text))
end
