import * as vscode from 'vscode';
import { CloseAction, ErrorAction, LanguageClient, type LanguageClientOptions } from 'vscode-languageclient/node';
import type { Log } from './log';
import { errorText } from './log';
import { ServerCommand, type CheckRef, type ClassRef, type ServerOptions } from './protocol';
import type { ServerProcess } from './serverProcess';
import { SECTION } from './settings';

/**
 * vscode-languageclient with its messages sent to the log at their level. It would also show some as notifications;
 * what the user must know is said once, by `Server`.
 */
class Client extends LanguageClient {
  constructor(
    process: ServerProcess,
    options: LanguageClientOptions,
    private readonly log: Log,
  ) {
    const { stdin: writer, stdout: reader } = process.child;
    super(SECTION, 'CuteSmith', () => Promise.resolve({ reader, writer }), options);
  }

  override debug(message: string, data?: unknown): void {
    this.log.debug(withData(message, data));
  }

  override info(message: string, data?: unknown): void {
    this.log.info(withData(message, data));
  }

  override warn(message: string, data?: unknown): void {
    this.log.warn(withData(message, data));
  }

  override error(message: string, data?: unknown): void {
    this.log.error(withData(message, data));
  }
}

/** Makes the client of a running server; `onClosed` is called when the connection ends and nobody stopped it. */
export function createClient(
  process: ServerProcess,
  options: ServerOptions,
  log: Log,
  onClosed: () => void,
): LanguageClient {
  return new Client(
    process,
    {
      documentSelector: [{ scheme: 'file', language: 'python' }],
      initializationOptions: options,
      outputChannel: log,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => {
          onClosed();
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      middleware: { executeCommand: runServerCommand },
    },
    log,
  );
}

type RunCommand = (command: string, args: unknown[]) => vscode.ProviderResult<unknown>;

/** Asks for what a command lacks, and shows its failure as one sentence. */
async function runServerCommand(command: string, args: unknown[], next: RunCommand): Promise<unknown> {
  const ready = command === ServerCommand.check ? await withCandidate(args) : args;
  if (!ready) {
    return undefined;
  }
  try {
    return await next(command, ready);
  } catch (error) {
    void vscode.window.showErrorMessage(errorText(error));
    return undefined;
  }
}

/** `cutesmith.check` from a lens or the palette names the class; the kernel file is the user's to pick. */
async function withCandidate(args: unknown[]): Promise<[CheckRef] | undefined> {
  const target = args[0] as ClassRef & Partial<CheckRef>;
  if (target.candidate !== undefined) {
    return [{ ...target, candidate: target.candidate }];
  }
  const picked = await vscode.window.showOpenDialog({
    title: `Kernel to validate against ${target.class}`,
    openLabel: 'Validate',
    defaultUri: vscode.Uri.joinPath(vscode.Uri.parse(target.uri), '..'),
    filters: { Python: ['py'] },
  });
  const [file] = picked ?? [];
  return file && [{ ...target, candidate: file.fsPath }];
}

function withData(message: string, data: unknown): string {
  return data === undefined || data === null ? message : `${message} ${errorText(data)}`;
}
