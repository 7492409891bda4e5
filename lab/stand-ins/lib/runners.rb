# frozen_string_literal: true

require 'securerandom'
require_relative 'postgres'

# The table ci_runners: who was created, with which token, and who has been heard of lately.
module Runners
  TYPES = %w[instance_type group_type project_type].freeze
  # GitLab calls a runner online when it asked for a job within two hours (ONLINE_CONTACT_TIMEOUT).
  ONLINE_SECONDS = 2 * 3600

  def self.create(runner_type:, description: nil, tag_list: '', run_untagged: true)
    raise ArgumentError, "runner_type #{runner_type.inspect} is not one of #{TYPES.join(', ')}" unless TYPES.include?(runner_type)

    Postgres.rows(<<~SQL, [description, "glrt-#{SecureRandom.urlsafe_base64(15)}", runner_type, Array(tag_list).join(','), run_untagged]).first
      insert into ci_runners (description, token, runner_type, tag_list, run_untagged) values ($1, $2, $3, $4, $5) returning *
    SQL
  end

  def self.by_token(token)
    return nil if token.to_s.empty?

    Postgres.rows('select * from ci_runners where token = $1', [token]).first
  end

  # Rows that match all of `columns` (name → value), oldest first.
  def self.where(columns = {})
    names = columns.keys.map(&:to_s)
    unknown = names - %w[id description token runner_type]
    raise ArgumentError, "ci_runners has no column #{unknown.first} here" unless unknown.empty?

    condition = names.each_with_index.map { |name, index| "#{name} = $#{index + 1}" }.join(' and ')
    Postgres.rows("select * from ci_runners #{"where #{condition}" unless names.empty?} order by id", columns.values)
  end

  def self.contacted(id) = Postgres.rows('update ci_runners set contacted_at = now() where id = $1', [id])
  def self.forget_contact(id) = Postgres.rows('update ci_runners set contacted_at = null where id = $1', [id])
  def self.delete(id) = Postgres.rows('delete from ci_runners where id = $1', [id])

  # All runners with GitLab's status words.
  def self.with_status
    Postgres.rows(<<~SQL, [ONLINE_SECONDS])
      select *, case when contacted_at is null then 'never_contacted'
                     when contacted_at > now() - make_interval(secs => $1) then 'online'
                     else 'offline' end as status
      from ci_runners order by id
    SQL
  end
end
