<?php

// A clean server of one tool on the PHP SDK, so that every finding on it is one about the SDK.
//
// `php php.php [add|prompt]` speaks over standard input and output. `php -S 127.0.0.1:PORT php.php` speaks over HTTP, with
// KIND=add or KIND=prompt in the environment. With `add` its tool adds integers, with `prompt` it has a prompt instead.
//
// It needs mcp/sdk 0.7.1, nyholm/psr7 and nyholm/psr7-server, installed by Composer beside this file.
declare(strict_types=1);

require __DIR__.'/vendor/autoload.php';

use Mcp\Schema\ToolAnnotations;
use Mcp\Server;
use Mcp\Server\Session\FileSessionStore;
use Mcp\Server\Transport\StdioTransport;
use Mcp\Server\Transport\StreamableHttpTransport;
use Nyholm\Psr7\Factory\Psr17Factory;

final class Handlers
{
    /** Sends the text back. */
    public function echo(string $text): string { return $text; }
    /** Adds two integers. */
    public function add(int $a, int $b): int { return $a + $b; }
    /**
     * Asks for the text.
     * @param string $text The text to repeat.
     */
    public function repeat(string $text): array { return ['user' => $text]; }
}

$kind = 'cli' === PHP_SAPI ? ($argv[1] ?? 'echo') : (getenv('KIND') ?: 'echo');
$builder = Server::builder()->setServerInfo('clean', '1.0.0');
match ($kind) {
    'prompt' => $builder->addPrompt([Handlers::class, 'repeat'], 'repeat'),
    'add' => $builder->addTool([Handlers::class, 'add'], 'add', annotations: new ToolAnnotations(readOnlyHint: true)),
    default => $builder->addTool([Handlers::class, 'echo'], 'echo', annotations: new ToolAnnotations(readOnlyHint: true)),
};
if ('cli' === PHP_SAPI) {
    exit($builder->build()->run(new StdioTransport()));
}
$builder->setSession(new FileSessionStore(sys_get_temp_dir().'/clean-sessions'));
$psr17 = new Psr17Factory();
$request = (new Nyholm\Psr7Server\ServerRequestCreator($psr17, $psr17, $psr17, $psr17))->fromGlobals();
$response = $builder->build()->run(new StreamableHttpTransport($request, $psr17, $psr17));
http_response_code($response->getStatusCode());
foreach ($response->getHeaders() as $name => $values) {
    foreach ($values as $at => $value) {
        header("$name: $value", 0 === $at);
    }
}
echo $response->getBody();
