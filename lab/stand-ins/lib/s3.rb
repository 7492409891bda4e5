# frozen_string_literal: true

require 'net/http'
require 'openssl'
require 'time'
require 'uri'

# A signed "list objects" (AWS signature version 4) with a Fog connection as GitLab's Rails gets it.
module S3
  SECONDS = 3
  EMPTY_BODY = OpenSSL::Digest::SHA256.hexdigest('')

  def self.check(connection, bucket)
    region = connection.fetch('region', 'us-east-1')
    uri = URI("#{connection.fetch('endpoint').chomp('/')}/#{bucket}?list-type=2&max-keys=1")
    request = Net::HTTP::Get.new(uri)
    sign(request, uri, region, connection.fetch('aws_access_key_id'), connection.fetch('aws_secret_access_key'))
    answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https', open_timeout: SECONDS, read_timeout: SECONDS) do |http|
      http.request(request)
    end
    raise "bucket #{bucket}: #{answer.code} #{answer.body.to_s[%r{<Code>(.*?)</Code>}, 1]}" unless answer.code == '200'

    "#{uri.host} bucket #{bucket}"
  end

  def self.sign(request, uri, region, key, secret, now = Time.now.utc)
    stamp = now.strftime('%Y%m%dT%H%M%SZ')
    host = uri.port == uri.default_port ? uri.host : "#{uri.host}:#{uri.port}"
    headers = {'host' => host, 'x-amz-content-sha256' => EMPTY_BODY, 'x-amz-date' => stamp}
    scope = "#{stamp[0, 8]}/#{region}/s3/aws4_request"
    names = headers.keys.join(';')
    canonical = [request.method, uri.path, uri.query.to_s, headers.map { |name, value| "#{name}:#{value}\n" }.join, names, EMPTY_BODY].join("\n")
    text = ['AWS4-HMAC-SHA256', stamp, scope, OpenSSL::Digest::SHA256.hexdigest(canonical)].join("\n")
    signing_key = [stamp[0, 8], region, 's3', 'aws4_request'].reduce("AWS4#{secret}") { |sofar, part| OpenSSL::HMAC.digest('SHA256', sofar, part) }
    headers.each { |name, value| request[name] = value }
    request['authorization'] = "AWS4-HMAC-SHA256 Credential=#{key}/#{scope}, SignedHeaders=#{names}, " \
                               "Signature=#{OpenSSL::HMAC.hexdigest('SHA256', signing_key, text)}"
  end
end
