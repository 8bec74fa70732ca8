/**
 * Language models with tools came to VS Code with 1.95; the extension runs in editors without them, too, and asks for
 * these names before it uses them.
 */
import 'vscode';

declare module 'vscode' {
  export class LanguageModelTextPart {
    readonly value: string;
    constructor(value: string);
  }

  export class LanguageModelToolCallPart {
    readonly callId: string;
    readonly name: string;
    readonly input: object;
    constructor(callId: string, name: string, input: object);
  }

  export interface LanguageModelChatTool {
    readonly name: string;
    readonly description: string;
    readonly inputSchema?: object | undefined;
  }

  export interface LanguageModelChatRequestOptions {
    tools?: LanguageModelChatTool[];
  }

  export interface LanguageModelChatResponse {
    readonly stream: AsyncIterable<unknown>;
  }
}
