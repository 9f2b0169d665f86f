// A clean server of one tool on the Go SDK 1, so that every finding on it is one about the SDK.
//
// `go run . [stdio|PORT] [add|prompt|stateless]` speaks over standard input and output, or over HTTP at a port. With `add` its
// tool has a structured result, with `prompt` it has a prompt instead, with `stateless` it opens no sessions.
package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type EchoArgs struct {
	Text string `json:"text" jsonschema:"the text to send back"`
}

type AddArgs struct {
	A int `json:"a" jsonschema:"the first number"`
	B int `json:"b" jsonschema:"the second number"`
}

type AddResult struct {
	Sum int `json:"sum" jsonschema:"the sum"`
}

func create(kinds []string) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "clean", Version: "1.0.0"}, nil)
	switch {
	case slices.Contains(kinds, "prompt"):
		s.AddPrompt(&mcp.Prompt{
			Name: "repeat", Description: "Asks for the text.",
			Arguments: []*mcp.PromptArgument{{Name: "text", Description: "The text to repeat.", Required: true}},
		}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: req.Params.Arguments["text"]}},
			}}, nil
		})
	case slices.Contains(kinds, "add"):
		mcp.AddTool(s, &mcp.Tool{
			Name: "add", Description: "Adds two integers.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, func(ctx context.Context, req *mcp.CallToolRequest, in AddArgs) (*mcp.CallToolResult, AddResult, error) {
			return nil, AddResult{Sum: in.A + in.B}, nil
		})
	default:
		mcp.AddTool(s, &mcp.Tool{
			Name: "echo", Description: "Sends the text back.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
		}, func(ctx context.Context, req *mcp.CallToolRequest, in EchoArgs) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
		})
	}
	return s
}

func main() {
	args := os.Args[1:]
	if len(args) == 0 || args[0] == "stdio" {
		if err := create(args).Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
		return
	}
	server := create(args[1:])
	var opts *mcp.StreamableHTTPOptions
	if slices.Contains(args, "stateless") {
		opts = &mcp.StreamableHTTPOptions{Stateless: true}
	}
	http.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+args[0], nil))
}
