# frozen_string_literal: true

# Run while the image is built: what can be told without any server. A failed expectation fails the build.
Dir[File.join(__dir__, '..', '{lib,roles}', '**', '*.rb')].each do |file|
  system('ruby', '-wc', file, out: File::NULL) or abort "#{file} does not parse"
end
Dir[File.join(__dir__, '*_test.rb')].sort.each { |file| require file }
puts "#{Expect.count} expectations met"
