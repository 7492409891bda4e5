# frozen_string_literal: true

# One line a message, with the time, on standard output: what `kubectl logs` shows.
$stdout.sync = true

def say(text)
  puts "#{Time.now.utc.strftime('%H:%M:%S')} #{text}"
end
