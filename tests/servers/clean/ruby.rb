# A clean server of one tool on the Ruby SDK 1, so that every finding on it is one about the SDK.
#
# `ruby ruby.rb [stdio|PORT] [add|prompt|stateless]` speaks over standard input and output, or over HTTP at a port, with Puma. With
# `add` its tool adds integers, with `prompt` it has a prompt instead, with `stateless` it opens no sessions.
#
# It needs the gems mcp 1.3.0 and puma 6.6.0.
require "mcp"

class Echo < MCP::Tool
  tool_name "echo"
  description "Sends the text back."
  input_schema(properties: { text: { type: "string", description: "The text" } }, required: ["text"])
  annotations(read_only_hint: true)
  def self.call(text:) = MCP::Tool::Response.new([{ type: "text", text: text }])
end

class Add < MCP::Tool
  tool_name "add"
  description "Adds two integers."
  input_schema(properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["a", "b"])
  annotations(read_only_hint: true)
  def self.call(a:, b:) = MCP::Tool::Response.new([{ type: "text", text: (a + b).to_s }])
end

class Repeat < MCP::Prompt
  prompt_name "repeat"
  description "Asks for the text."
  arguments [MCP::Prompt::Argument.new(name: "text", description: "The text to repeat", required: true)]
  def self.template(args, server_context:)
    MCP::Prompt::Result.new(messages: [MCP::Prompt::Message.new(role: "user", content: MCP::Content::Text.new(args[:text]))])
  end
end

args = ARGV.dup
content = args.include?("prompt") ? { prompts: [Repeat] } : { tools: [args.include?("add") ? Add : Echo] }
server = MCP::Server.new(name: "clean", version: "1.0.0", **content)
if args.empty? || args[0] == "stdio"
  MCP::Server::Transports::StdioTransport.new(server).open
else
  require "puma"
  require "puma/server"
  app = MCP::Server::Transports::StreamableHTTPTransport.new(server, stateless: args.include?("stateless"))
  puma = Puma::Server.new(app, nil, min_threads: 0, max_threads: 32)
  puma.add_tcp_listener("127.0.0.1", args[0].to_i)
  puma.run.join
end
