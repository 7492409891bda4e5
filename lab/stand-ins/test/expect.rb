# frozen_string_literal: true

# The smallest test library that does.
module Expect
  @count = 0
  class << self
    attr_reader :count

    def equal(what, wanted, found)
      abort "#{what}: expected #{wanted.inspect}, found #{found.inspect}" unless wanted == found
      @count += 1
    end

    def raises(what, kind)
      yield
      abort "#{what}: expected #{kind}, nothing was raised"
    rescue kind
      @count += 1
    end
  end
end
