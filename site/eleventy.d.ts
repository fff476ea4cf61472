/** The used part of Eleventy, which has no declarations. */
declare module '@11ty/eleventy' {
  type Token = { content: string; attrSet(name: string, value: string): void };
  type Rule = (tokens: Token[], index: number, options: object, env: object, self: Renderer) => string;
  type Renderer = {
    rules: Record<string, Rule | undefined>;
    renderToken(tokens: Token[], index: number, options: object): string;
  };
  type Markdown = { set(options: object): void; renderer: Renderer };
  type Config = {
    setUseGitIgnore(uses: boolean): void;
    addGlobalData(name: string, value: unknown): void;
    amendLibrary(name: 'md', amend: (markdown: Markdown) => void): void;
  };
  export class Eleventy {
    constructor(
      input: string,
      output: string,
      options: { quietMode?: boolean; configPath?: string | false; config?: (eleventy: Config) => object },
    );
    write(): Promise<void>;
  }
}
