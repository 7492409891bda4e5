# frozen_string_literal: true

require_relative 'accounts'
require_relative 'runners'

# The handful of Rails classes that set-up scripts call, over the stand-ins' tables.
module ActiveRecord
  class RecordInvalid < StandardError; end
  class RecordNotFound < StandardError; end
end

class User
  attr_accessor :password, :password_confirmation, :password_automatically_set
  attr_reader :id, :username, :email

  def self.find_by(conditions)
    raise ArgumentError, 'users are looked up by username only here' unless conditions.keys == [:username]

    Accounts.find(conditions[:username])&.then { |row| new(row) }
  end

  def self.find_by!(conditions) = find_by(conditions) || raise(ActiveRecord::RecordNotFound, "Couldn't find User")
  def self.find_by_username(username) = find_by(username: username)

  def initialize(row)
    @id = row['id'].to_i
    @username = row['username']
    @email = row['email']
    @admin = row['admin'] == 't'
    @encrypted_password = row['encrypted_password']
  end

  def admin? = @admin
  def valid_password?(text) = Accounts.valid?(text.to_s, @encrypted_password)

  def save!
    return true if password.nil?
    raise ActiveRecord::RecordInvalid, "Validation failed: Password is too short (minimum is #{Accounts::MINIMUM_LENGTH} characters)" if password.length < Accounts::MINIMUM_LENGTH
    raise ActiveRecord::RecordInvalid, "Validation failed: Password confirmation doesn't match Password" if password_confirmation && password_confirmation != password

    Accounts.change_password(@id, password)
    @encrypted_password = Accounts.find(@username)['encrypted_password']
    true
  end

  def save
    save!
  rescue ActiveRecord::RecordInvalid
    false
  end

  def personal_access_tokens = PersonalAccessTokens.new(self)
end

class PersonalAccessTokens
  Token = Struct.new(:token, :name)

  def initialize(user)
    @user = user
  end

  def create!(name:, **) = Token.new(Accounts.mint_token(@user.id, name), name)
end

class ServiceResponse
  attr_reader :message, :reason, :payload

  def initialize(status, message, reason, payload)
    @status = status
    @message = message
    @reason = reason
    @payload = payload
  end

  def self.success(payload: {}) = new(:success, nil, nil, payload)
  def self.error(message:, reason: nil) = new(:error, message, reason, {})
  def success? = @status == :success
  def error? = !success?
  def errors = Array(message)
end

module Ci
  class Runner
    attr_reader :id, :description, :token, :runner_type, :contacted_at, :created_at

    def self.where(conditions = {}) = ::Runners.where(conditions).map { |row| new(row) }
    def self.all = where
    def self.find_by(conditions) = where(conditions).first
    def self.find_by_token(token) = find_by(token: token)
    def self.count = where.count
    def self.instance_type = where(runner_type: 'instance_type')

    def initialize(row)
      @id = row['id'].to_i
      @description, @token, @runner_type = row.values_at('description', 'token', 'runner_type')
      @created_at, @contacted_at = row.values_at('created_at', 'contacted_at')
    end

    def destroy! = ::Runners.delete(id)
    alias destroy destroy!
    alias delete destroy!
  end
end

module Ci
  module Runners
    class CreateRunnerService
      def initialize(user:, params:)
        @user = user
        @params = params
      end

      def execute
        return ServiceResponse.error(message: 'Insufficient permissions', reason: :forbidden) unless @user&.admin?

        row = ::Runners.create(
          runner_type: @params.fetch(:runner_type).to_s, description: @params[:description],
          tag_list: @params[:tag_list], run_untagged: @params.fetch(:run_untagged, true)
        )
        ServiceResponse.success(payload: {runner: Ci::Runner.new(row)})
      rescue ArgumentError, KeyError => e
        ServiceResponse.error(message: e.message, reason: :save_error)
      end
    end
  end
end
