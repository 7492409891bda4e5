# frozen_string_literal: true

require_relative 'expect'
require_relative '../lib/s3'

# An S3 server refuses a signature whose host header lacks the port that the request goes to.
uri = URI('http://minio.minio.svc:9000/gitlab-artifacts?list-type=2&max-keys=1')
request = Net::HTTP::Get.new(uri)
S3.sign(request, uri, 'us-east-1', 'key', 'secret', Time.utc(2026, 11, 30, 12, 0, 0))
Expect.equal('the signed headers', true, request['authorization'].include?('SignedHeaders=host;x-amz-content-sha256;x-amz-date'))
Expect.equal('the host header has the port', 'minio.minio.svc:9000', request['host'])
